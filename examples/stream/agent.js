// The same agent in JavaScript, for Node, without any package: one request a line on stdin, one reply a line on stdout.
const { createInterface } = require("node:readline");
const { setTimeout } = require("node:timers/promises");

const ORDERS = { "A-17": "shipped", "B-42": "cancelled" };

async function agent(request) {
  const prompt = request.input_messages.at(-1).content;
  console.error("asked", prompt); // stdout belongs to the replies
  const order = Object.keys(ORDERS).find((name) => prompt.includes(name));
  if (!order) return { output_messages: [{ role: "assistant", content: "Which order?" }] };
  await setTimeout(10); // a tool that takes its time
  const call = { tool: "find_order", input: { order_id: order }, output: { status: ORDERS[order] } };
  return {
    output_messages: [
      { role: "assistant", tool_calls: [call] },
      { role: "assistant", content: `Your order is ${ORDERS[order]}.` },
    ],
  };
}

async function answer(line) {
  const request = JSON.parse(line);
  const reply = await agent(request).catch((error) => ({ error: { message: String(error) } }));
  process.stdout.write(JSON.stringify({ id: request.id, ...reply }) + "\n");
}

createInterface({ input: process.stdin }).on("line", answer);
