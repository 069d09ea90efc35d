package library

import (
	"cmp"
	"strings"
)

// compareVersions orders versions as people read them: by numbers between dots,
// 1.10 after 1.9; a suffix after '-' comes before the version without it, and what
// follows '+' does not count. Parts that are not numbers are ordered as text,
// before numbers.
func compareVersions(a, b string) int {
	a, _, _ = strings.Cut(a, "+")
	b, _, _ = strings.Cut(b, "+")
	coreA, preA, isPreA := strings.Cut(a, "-")
	coreB, preB, isPreB := strings.Cut(b, "-")
	if c := compareParts(coreA, coreB); c != 0 {
		return c
	}
	switch {
	case isPreA && isPreB:
		return compareParts(preA, preB)
	case isPreA:
		return -1
	case isPreB:
		return 1
	}
	return 0
}

func compareParts(a, b string) int {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(as), len(bs)) {
		if c := comparePart(part(as, i), part(bs, i)); c != 0 {
			return c
		}
	}
	return 0
}

// part is the i-th part; a version that is shorter goes on with zeros.
func part(parts []string, i int) string {
	if i < len(parts) {
		return parts[i]
	}
	return "0"
}

func comparePart(a, b string) int {
	na, nb := isNumber(a), isNumber(b)
	switch {
	case na && nb:
		a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
		if c := cmp.Compare(len(a), len(b)); c != 0 {
			return c
		}
	case na:
		return 1
	case nb:
		return -1
	}
	return cmp.Compare(a, b)
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
