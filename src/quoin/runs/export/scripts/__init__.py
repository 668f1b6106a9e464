"""Scripts that are written beside exported parts; each runs by itself, with numpy and onnxruntime or torch."""
