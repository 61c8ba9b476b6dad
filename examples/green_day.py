"""A day of carbon intensity as a sine: most in the evening, least twelve hours earlier.

Run it: ``python examples/green_day.py > day.csv``. It stands in for a measured series.
"""

import math

MEAN, SWING, PEAK_HOUR = 300.0, 100.0, 19

print("time,grams_per_kwh")
for hour in range(24):
    grams = MEAN + SWING * math.cos(2.0 * math.pi * (hour - PEAK_HOUR) / 24.0)
    print(f"2024-01-01T{hour:02}:00,{grams:.1f}")
