"""What was trained, taken elsewhere: ONNX, torch.export, Hugging Face and safetensors, each read back and compared."""
