"""Mutation of replies: changed replies that an eval should notice, and evaluators that would notice them."""
