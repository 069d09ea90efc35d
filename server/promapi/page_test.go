package promapi_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/loadstone-db/loadstone/engine/results/metric"
)

// TestTheDashboardNamesWhatRunsHave: a panel of a metric that does not exist stays empty for ever. That its queries
// have series is seen by deploy/first-run.sh.
func TestTheDashboardNamesWhatRunsHave(t *testing.T) {
	text, err := os.ReadFile("../../deploy/grafana/runs.json")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`loadstone_[a-z_]+`).FindAllString(string(text), -1)
	for _, name := range named {
		if metric.ByName(name) == nil {
			t.Errorf("the dashboard names %s, which no run has", name)
		}
	}
	if len(named) < 15 {
		t.Errorf("%d names were found", len(named))
	}
}

// TestThePageOffersTheFunctionsOfTheEngine compares the names that the page Explore completes with those that an
// expression may call.
func TestThePageOffersTheFunctionsOfTheEngine(t *testing.T) {
	text, err := os.ReadFile("../../ui/src/explore/functions.ts")
	if err != nil {
		t.Fatal(err)
	}
	offered := func(list string) (names []string) {
		block := regexp.MustCompile(`(?s)export const ` + list + `: Record<string, string> = \{(.*?)\n\};`).FindSubmatch(text)
		if block == nil {
			t.Fatalf("no %s in the page's source", list)
		}
		for _, m := range regexp.MustCompile(`(?m)^ +(\w+):`).FindAllSubmatch(block[1], -1) {
			names = append(names, string(m[1]))
		}
		return names
	}
	var want []string
	for name, f := range parser.Functions {
		// info is not supported, see docs/guides/dashboards.md.
		if !f.Experimental && name != "info" {
			want = append(want, name)
		}
	}
	slices.Sort(want)
	if got := offered("functions"); !slices.Equal(got, want) {
		t.Errorf("functions: the page offers\n%v, the engine has\n%v", got, want)
	}
	aggregations := map[string]bool{}
	for item := range parser.ItemTypeStr {
		if item.IsAggregator() && !item.IsExperimentalAggregator() {
			aggregations[item.String()] = true
		}
	}
	if got, want := offered("aggregations"), slices.Sorted(maps.Keys(aggregations)); !slices.Equal(got, want) {
		t.Errorf("aggregations: the page offers\n%v, the engine has\n%v", got, want)
	}
}
