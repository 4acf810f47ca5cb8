"""Generated questions with known answers, for evaluating a model and for training the stand-in."""
