package template_test

import (
	"fmt"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plan/template"
)

const lookups = `# what the shop does most
name: lookups
target: {connection: playground, table_name: orders}
workload: {plugin: mix, duration_seconds: 30}
`

// A template is YAML or JSON; what it leaves out has a default.
func ExampleParse() {
	scenario, err := template.Parse([]byte(lookups))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(scenario.Name, scenario.Workload.LoadMode, scenario.Workload.ConcurrentConnections, scenario.Scaling.Mode)
	// Output:
	// lookups CONCURRENCY 16 FIXED
}

// Every field that cannot be used is named, not the first one only.
func ExampleParse_wrong() {
	_, err := template.Parse([]byte("name: x\ntarget: {connection: playground, table: orders}\nworkload: {plugin: mix, " +
		"duration_seconds: -1}\n"))
	for _, f := range engine.AsError(err).Fields {
		fmt.Println(f.Field)
	}
	// Output:
	// target.table
	// workload.duration_seconds
}

// Fields are replaced by their paths; comments stay.
func ExampleSetAll() {
	changed, err := template.SetAll([]byte(lookups),
		[]template.Assignment{{Path: "workload.duration_seconds", Value: "5"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(string(changed))
	// Output:
	// # what the shop does most
	// name: lookups
	// target: {connection: playground, table_name: orders}
	// workload: {plugin: mix, duration_seconds: 5}
}
