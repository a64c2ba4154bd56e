"""Expert advice: exponential weights on experts, or one expert who is followed for a batch."""
