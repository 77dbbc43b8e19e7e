# Runs a Ruby assertion of promptfoo as a check of agentv: it reads the run on stdin, and prints its verdict.
require "json"

run = JSON.parse($stdin.read)
settings = run["config"] || {}
messages = run["case"]["input_messages"] || []
alone = messages.length == 1 && messages[0]["content"].is_a?(String)
context = {
  "prompt" => alone ? messages[0]["content"] : JSON.generate(messages),
  "vars" => run["case"]["vars"] || {},
  "config" => settings["config"] || {},
  "metadata" => (run["response"] || {})["metadata"] || {},
}

begin
  if ARGV[0]
    load ARGV[0]
    value = send((settings["function"] || "get_assert").to_sym, run["candidate"], context)
  else
    eval("def agentv_main(output, context)\n#{settings["code"]}\nend")
    value = agentv_main(run["candidate"], context)
  end
  inverse = settings["inverse"] == true
  case value
  when true, false
    held = value != inverse
    score = held ? 1 : 0
  when Numeric
    held = (settings["threshold"] ? value >= settings["threshold"] : value > 0) != inverse
    score = value
  when Hash
    passed = value.fetch("pass") { value.fetch(:pass) { value.fetch("pass_") { value.fetch(:pass_) } } }
    held = passed != inverse
    score = value["score"] || value[:score] || (passed ? 1 : 0)
    reason = value["reason"] || value[:reason]
  else
    raise "the assertion must return true, false, a number or a result with pass"
  end
rescue StandardError, ScriptError => error
  held, score, reason = false, 0, "it raised #{error.message}"
end
shown = settings["graded"] ? [[score, 0].max, 1].min : (held ? 1 : 0)
puts JSON.generate({ "score" => shown, (held ? "hits" : "misses") => [(reason || "the assertion gave #{value}").to_s] })
