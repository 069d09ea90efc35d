package compare

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
)

// Unlike is something in which the sides differ besides what is compared.
type Unlike struct {
	What string `json:"what"`
	A    string `json:"a"`
	B    string `json:"b"`
	// Judged is false where figures of the sides say nothing about each other.
	Judged bool `json:"judged"`
}

func (u Unlike) sentence() string {
	if u.A == "" && u.B == "" {
		return fmt.Sprintf("The runs differ in their %s.", u.What)
	}
	return fmt.Sprintf("The runs differ in their %s: %s of A, %s of B.", u.What, u.A, u.B)
}

// aspect is what runs are to agree in.
type aspect struct {
	what string
	of   func(engine.Summary) string
	// hidden values are not shown, judged ones do not keep figures from being judged; where one is optional, a run
	// without it differs from none.
	hidden, judged, optional bool
}

var aspects = []aspect{
	{what: "workload", optional: true, of: func(s engine.Summary) string {
		if s.Setup == nil {
			return ""
		}
		return s.Setup.Workload
	}},
	{what: "load", optional: true, of: func(s engine.Summary) string {
		if s.Setup == nil {
			return ""
		}
		return s.Setup.Load
	}},
	{what: "plugins", hidden: true, judged: true, of: func(s engine.Summary) string {
		text := ""
		for _, p := range s.Plugins {
			text += p.Name + " " + p.Version + " " + p.SHA256 + "; "
		}
		return text
	}},
	{what: "Loadstone version", judged: true, of: func(s engine.Summary) string { return s.Environment.LoadstoneVersion }},
	{what: "machine of the generator", hidden: true, judged: true, of: func(s engine.Summary) string {
		return fmt.Sprintf("%s, %d CPUs, %s", s.Environment.Hostname, s.Environment.CPUs, s.Environment.CPUModel)
	}},
	{what: "I/O engine", judged: true, of: func(s engine.Summary) string { return s.Environment.IOEngine }},
	{what: "driver", judged: true, of: func(s engine.Summary) string { return s.Environment.Driver }},
	{what: "server version", judged: true, of: func(s engine.Summary) string { return s.Environment.ServerVersion }},
}

// unlike is in what the runs differ. Runs of older versions have no setup, which differs from nothing.
func unlike(a, b []engine.Summary) []Unlike {
	list := []Unlike{}
	for _, x := range aspects {
		left, right := values(a, x), values(b, x)
		all := append(slices.Clone(left), right...)
		slices.Sort(all)
		if all = slices.Compact(all); len(all) < 2 {
			continue
		}
		u := Unlike{What: x.what, Judged: x.judged}
		if !x.hidden {
			u.A, u.B = strings.Join(left, " and "), strings.Join(right, " and ")
		}
		list = append(list, u)
	}
	return append(list, unlikeTables(a, b)...)
}

func values(side []engine.Summary, x aspect) (list []string) {
	for _, s := range side {
		if v := x.of(s); (v != "" || !x.optional) && !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}

// otherSize is how many times as many rows make a table another one: inserts of the runs themselves do not.
const otherSize = 1.1

// fewRows more make no table another one.
const fewRows = 10

// tableRows are the least and the most rows that runs of a side found in a table, and how many of them know it.
type tableRows struct {
	least, most int64
	runs        int
}

func (r tableRows) String() string {
	switch {
	case r.runs == 0:
		return "none"
	case r.least == r.most:
		return fmt.Sprintf("%d rows", r.least)
	}
	return fmt.Sprintf("%d to %d rows", r.least, r.most)
}

func (r tableRows) add(least, most int64, runs int) tableRows {
	if runs == 0 {
		return r
	}
	if r.runs == 0 {
		return tableRows{least, most, runs}
	}
	return tableRows{min(r.least, least), max(r.most, most), r.runs + runs}
}

// tablesOf are the tables of a side's runs, and how many runs know theirs.
func tablesOf(side []engine.Summary) (tables map[string]tableRows, runs int) {
	tables = map[string]tableRows{}
	for _, s := range side {
		if s.Setup == nil || s.Setup.Tables == nil {
			continue
		}
		runs++
		for name, n := range s.Setup.Tables {
			tables[name] = tables[name].add(n, n, 1)
		}
	}
	return tables, runs
}

// unlikeTables are tables whose sizes differ, or that only some of the runs have.
func unlikeTables(a, b []engine.Summary) (list []Unlike) {
	left, leftRuns := tablesOf(a)
	right, rightRuns := tablesOf(b)
	names := slices.AppendSeq(slices.Collect(maps.Keys(left)), maps.Keys(right))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		x, y := left[name], right[name]
		all := x.add(y.least, y.most, y.runs)
		if all.runs < leftRuns+rightRuns || float64(all.most) > otherSize*float64(all.least)+fewRows {
			list = append(list, Unlike{What: "table " + name, A: x.String(), B: y.String()})
		}
	}
	return list
}

// addUnlike notes in what the sides differ, and takes the verdicts back where they say nothing about each other.
func (c *Comparison) addUnlike(list []Unlike) {
	c.Unlike = list
	var not []string
	for _, u := range list {
		if !u.Judged {
			not = append(not, u.What)
		}
	}
	if len(not) > 0 {
		c.clearVerdicts("the runs differ in their " + strings.Join(not, ", "))
	}
}
