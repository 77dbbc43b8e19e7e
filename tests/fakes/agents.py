"""Programs and servers that the kit's subjects talk to."""

SINGLE = """
import json, sys, time, uuid
request = json.load(sys.stdin)
prompt = request["input_messages"][-1]["content"]
print(json.dumps({
    "text": "you said: " + prompt,
    "thread_id": request.get("thread_id") or uuid.uuid4().hex,
    "tokens_usage": {"input_tokens": 10, "output_tokens": 4, "cache_read_tokens": 3},
    "conformance_extra": 17,
}))
"""
LINES = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    prompt = request["input_messages"][-1]["content"]
    print(json.dumps({"id": request["id"], "text": "you said: " + prompt, "conformance_extra": 17}), flush=True)
"""
SLOW = "import sys, time; time.sleep(600)"
LARGE = "import sys\nfor _ in range(300): sys.stdout.write('x' * 100_000)"
LARGE_LINE = """
import json, sys
for line in sys.stdin:
    sys.stdout.write(json.dumps({"id": json.loads(line)["id"], "text": "x" * 30_000_000}) + "\\n")
    sys.stdout.flush()
"""
FAILS = "import sys; print('no such thing', file=sys.stderr); sys.exit(3)"
REMEMBERING = """
import json, sys
def told(request):
    users = [message["content"] for message in request["input_messages"] if message["role"] == "user"]
    messages = [*request["input_messages"], {"role": "assistant", "content": " ".join(users)}]
    return {"id": request["id"], "output_messages": messages, "thread_id": request["conversation_id"]}
"""
REMEMBERING_SINGLE = REMEMBERING + "print(json.dumps(told(json.load(sys.stdin))))"
REMEMBERING_LINES = REMEMBERING + "for line in sys.stdin: print(json.dumps(told(json.loads(line))), flush=True)"
