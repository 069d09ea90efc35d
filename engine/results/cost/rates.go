package cost

import (
	"cmp"
	"slices"
)

// Rate is what an hour of one cluster takes.
type Rate struct {
	Type, Size     string
	CreditsPerHour float64
	MinimumSeconds float64
}

// Rates are those of a list, by type and then from cheap to dear.
func (p Prices) Rates() []Rate {
	var list []Rate
	for kind, w := range p.Warehouses {
		for size, credits := range w.CreditsPerHour {
			list = append(list, Rate{kind, size, credits, w.MinimumSeconds})
		}
	}
	slices.SortFunc(list, func(a, b Rate) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.CreditsPerHour, b.CreditsPerHour),
			cmp.Compare(a.Size, b.Size))
	})
	return list
}
