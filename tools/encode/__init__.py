"""Foundation: text encoders and chat models."""
