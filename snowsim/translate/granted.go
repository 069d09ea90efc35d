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

// To lists what a role is granted and owns, and with its hierarchy what the roles in it do.
func (g *grants) To(role string, hierarchy bool, tables []Table) []ShownGrant {
	g.mu.RLock()
	defer g.mu.RUnlock()
	of := func(other string) bool { return other == role || hierarchy && g.within(role, other, 0) }
	var rows []ShownGrant
	for one := range g.held {
		if of(one.Role) {
			for _, privilege := range one.privileges() {
				rows = append(rows, ShownGrant{privilege, one.Kind, one.Object, one.Role})
			}
		}
	}
	for holder, members := range g.roles {
		if of(holder) {
			for _, member := range members {
				rows = append(rows, ShownGrant{"USAGE", "ROLE", Display(member), holder})
			}
		}
	}
	for _, t := range tables {
		if of(t.Owner) {
			o := TableObject(&t)
			rows = append(rows, ShownGrant{"OWNERSHIP", o.Kind, o.Name, t.Owner})
		}
	}
	return compact(rows)
}

// membership is a role that is granted to a user or a role.
type membership struct{ Role, Kind, Grantee string }

// Members lists the roles of a user, or who is granted a role.
func (g *grants) Members(user, role string) []membership {
	g.mu.RLock()
	defer g.mu.RUnlock()
	var all []membership
	for grantee, roles := range g.users {
		for _, r := range roles {
			if grantee == user || r == role {
				all = append(all, membership{r, "USER", grantee})
			}
		}
	}
	for grantee, roles := range g.roles {
		if role != "" && slices.Contains(roles, role) {
			all = append(all, membership{role, "ROLE", grantee})
		}
	}
	return all
}
