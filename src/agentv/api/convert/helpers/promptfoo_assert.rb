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
  threshold = settings["threshold"]
  if value.is_a?(String)
    value = case value.downcase
            when "true" then true
            when "false" then false
            else value.start_with?("{") ? JSON.parse(value) : Float(value)
            end
  end
  case value
  when true, false
    held = value != inverse
    score = held ? 1 : 0
  when Numeric
    held = (threshold ? value >= threshold : value > 0) != inverse
    score = value
  when Hash
    result = value.transform_keys(&:to_s)
    passed = result.fetch("pass") { result["pass_"] }
    score = result["score"]
    unless [true, false].include?(passed) && score.is_a?(Numeric) && result["reason"].is_a?(String)
      raise "the assertion must return a result with pass, score and reason"
    end
    passed &&= threshold.nil? || score >= threshold
    held = passed != inverse
    reason = inverse ? nil : result["reason"]
  else
    raise "the assertion must return true, false, a number or a result with pass"
  end
rescue StandardError, ScriptError => error
  held, score, reason = false, 0, "it raised #{error.message}"
end
shown = settings["graded"] ? [[score, 0].max, 1].min : (held ? 1 : 0)
puts JSON.generate({ "score" => shown, (held ? "hits" : "misses") => [(reason || "the assertion gave #{value}").to_s] })
