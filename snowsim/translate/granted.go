package translate

import "slices"

// ShownGrant is a row of SHOW GRANTS.
type ShownGrant struct{ Privilege, Kind, Name, Grantee string }

// Withheld owns what somebody is denied privileges on: the denied role is shown with
// those that are left to it, instead of as an owner, who would have all.
const Withheld = "SNOWSIM"

// On lists who is granted what on an object, as a role sees it.
func (g *grants) On(o Object, asked string) []ShownGrant {
	var rows []ShownGrant
	left, isDenied := []string{}, false
	for _, privilege := range privilegesOf[o.Kind] {
		if g.denies(asked, privilege, o) {
			isDenied = true
		} else {
			left = append(left, privilege)
		}
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	if isDenied {
		if g.everything(asked) || g.within(asked, o.Owner, 0) {
			for _, privilege := range left {
				rows = append(rows, ShownGrant{privilege, o.Kind, o.Name, asked})
			}
		}
		o.Owner = Withheld
	}
	if o.Owner != "" {
		rows = append(rows, ShownGrant{"OWNERSHIP", o.Kind, o.Name, o.Owner})
	}
	for one := range g.held {
		if one.covers(o) {
			for _, privilege := range one.privileges() {
				if !isDenied || slices.Contains(left, privilege) || one.Role != asked {
					rows = append(rows, ShownGrant{privilege, o.Kind, o.Name, one.Role})
				}
			}
		}
	}
	return compact(rows)
}

// privileges are those of the grant, one by one.
func (one Grant) privileges() []string {
	if one.Privilege == "ALL" {
		return privilegesOf[one.Kind]
	}
	return []string{one.Privilege}
}

func compact(rows []ShownGrant) []ShownGrant {
	seen := map[ShownGrant]bool{}
	return slices.DeleteFunc(rows, func(r ShownGrant) bool {
		again := seen[r]
		seen[r] = true
		return again
	})
}
