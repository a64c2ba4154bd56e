"""Expert advice: exponential weights on experts, or one expert for each batch."""
