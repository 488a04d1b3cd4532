"""Models, losses, local training and evaluation on one device."""
