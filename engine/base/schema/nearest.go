package schema

import "strings"

// Nearest returns the candidate that name was most likely meant to be, or ""
// when none is near. Case, '-' and '_' do not count; a part of one name alone, of four characters or more,
// means that name.
func Nearest(name string, candidates []string) string {
	folded := fold(name)
	best, bestDistance := "", 1+max(2, len([]rune(folded))/3)
	if len(folded) > 64 {
		return ""
	}
	for _, c := range candidates {
		if d := distance(folded, fold(c)); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	if best == "" {
		return soleMatch(folded, candidates)
	}
	return best
}

// soleMatch is the one candidate that a name is a part of, as duration is of duration_seconds; "" of none and of
// several.
func soleMatch(folded string, candidates []string) (found string) {
	if len([]rune(folded)) < minSubstring {
		return ""
	}
	for _, c := range candidates {
		if strings.Contains(fold(c), folded) {
			if found != "" {
				return ""
			}
			found = c
		}
	}
	return found
}

// minSubstring is how many characters say which name is meant that they are a part of.
const minSubstring = 4

var separators = strings.NewReplacer("-", "", "_", "", " ", "")

func fold(s string) string { return separators.Replace(strings.ToLower(s)) }

// distance is the Levenshtein distance with transpositions (optimal string alignment).
func distance(a, b string) int {
	ra, rb := []rune(a), []rune(b)
	prev2 := make([]int, len(rb)+1)
	prev := make([]int, len(rb)+1)
	cur := make([]int, len(rb)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(ra); i++ {
		cur[0] = i
		for j := 1; j <= len(rb); j++ {
			cost := 1
			if ra[i-1] == rb[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && ra[i-1] == rb[j-2] && ra[i-2] == rb[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(rb)]
}
