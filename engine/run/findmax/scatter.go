package findmax

import "math"

// StandardError is the standard error of the mean of the rates of a step's seconds, as a fraction of that mean. Seconds
// that resemble their neighbours tell less. It is 0 where there are too few to tell.
func StandardError(perSecond []float64) float64 {
	n := float64(len(perSecond))
	const fewest = 5
	if n < fewest {
		return 0
	}
	mean := 0.0
	for _, v := range perSecond {
		mean += v / n
	}
	if mean <= 0 {
		return 0
	}
	squares, neighbours := 0.0, 0.0
	for i, v := range perSecond {
		squares += sq(v - mean)
		if i > 0 {
			neighbours += (v - mean) * (perSecond[i-1] - mean)
		}
	}
	if squares == 0 {
		return 0
	}
	const most = 0.8
	resemble := min(max(neighbours/squares, 0), most)
	return math.Sqrt(squares/(n-1)/n*(1+resemble)/(1-resemble)) / mean
}
