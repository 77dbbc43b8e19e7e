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
