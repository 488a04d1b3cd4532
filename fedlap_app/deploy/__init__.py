"""What organisations exchange before they meet: keys, certificates, start commands, and checks."""
