"""Pure statistics on outcomes: agreement, bias, ranking, significance, calibration."""
