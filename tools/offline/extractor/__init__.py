"""The offline extractor, which finds facts by rules of English grammar."""
