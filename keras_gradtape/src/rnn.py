"""Placeholder: not written yet."""

bidirectional_gru = bidirectional_lstm = cudnn_ok = gru = lstm = rnn = None
