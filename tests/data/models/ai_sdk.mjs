// A model that looks up the weather in Paris and then says it.
import { MockLanguageModelV4 } from "ai/test";

function said(content, reason, given, made) {
  const input = { total: given, noCache: given, cacheRead: 0, cacheWrite: 0 };
  const output = { total: made, text: made, reasoning: 0 };
  return {
    content: [content],
    finishReason: { unified: reason, raw: reason },
    usage: { inputTokens: input, outputTokens: output },
    warnings: [],
  };
}

export const model = new MockLanguageModelV4({
  doGenerate: async ({ prompt }) => {
    const last = prompt.at(-1);
    if (last.role === "tool") {
      const text = `It is ${last.content[0].output.value} in Paris.`;
      return said({ type: "text", text }, "stop", 70, 8);
    }
    const input = JSON.stringify({ city: "Paris" });
    return said({ type: "tool-call", toolCallId: "call_1", toolName: "getWeather", input }, "tool-calls", 50, 10);
  },
});
