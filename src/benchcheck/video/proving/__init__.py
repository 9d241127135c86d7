"""The decode-parity certificate: a second decoder over a sample of the frames."""
