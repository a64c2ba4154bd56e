"""The mathematics that several families share."""
