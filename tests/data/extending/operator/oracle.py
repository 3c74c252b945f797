"atan": torch.atan,
