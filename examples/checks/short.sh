#!/bin/sh
# The answer is shorter than so many bytes; reads the run as JSON, with no tool but sh and sed.
answer=$(sed -n 's/.*"candidate":"\([^"]*\)".*/\1/p')
if [ "${#answer}" -le "$1" ]; then
    echo '{"score": 1, "hits": ["the answer has '"${#answer}"' bytes"]}'
else
    echo '{"score": 0, "misses": ["the answer has '"${#answer}"' bytes, at most '"$1"' are allowed"]}'
fi
