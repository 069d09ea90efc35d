//go:build !nosnowflake

package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/snowsim/translate"
)

// TestSnowsimFlags: what cannot be meant is refused before anything starts.
func TestSnowsimFlags(t *testing.T) {
	good := func() *snowsimCommand {
		return &snowsimCommand{Listen: "127.0.0.1:0", User: "ann", Password: "x", Warehouse: "w", Size: "MEDIUM", Clusters: 3,
			Slots: 4, TimeScale: 10, Lag: time.Second,
			Faults: []string{"503,rate=0.01", "slow,at=7,delay=3s,on=chunk"},
			Region: "gcp_us_central1", Trial: true, Deny: []string{"update", "Create  Table on public from bench"}}
	}
	o, err := good().options()
	if err != nil {
		t.Fatal(err)
	}
	if w := o.Warehouses[0]; w.Name != "W" || w.Size != "Medium" || w.MaxClusters != 3 || w.MaxConcurrency != 4 ||
		o.Users[0].Name != "ANN" || len(o.Faults) != 2 || o.Faults[1].DelayMs != 3000 {
		t.Errorf("%+v", o)
	}
	if !o.Contract.Trial || o.Contract.Standard || o.Contract.Region != "GCP_US_CENTRAL1" || len(o.Denied) != 2 ||
		o.Denied[0].Privilege != "UPDATE" ||
		o.Denied[1] != (translate.Denied{Role: "BENCH", Privilege: "CREATE TABLE", Object: "PUBLIC"}) {
		t.Errorf("%+v, %+v", o.Contract, o.Denied)
	}
	for flag, change := range map[string]func(*snowsimCommand){
		"--listen":     func(c *snowsimCommand) { c.Listen = "8085" },
		"--size":       func(c *snowsimCommand) { c.Size = "HUGE" },
		"--clusters":   func(c *snowsimCommand) { c.Clusters = 0 },
		"--slots":      func(c *snowsimCommand) { c.Slots = -1 },
		"--warehouse":  func(c *snowsimCommand) { c.Clusters = 11 },
		"--time-scale": func(c *snowsimCommand) { c.TimeScale = 0 },
		"--lag":        func(c *snowsimCommand) { c.Lag = -1 },
		"--edition":    func(c *snowsimCommand) { c.Edition = "standard" }, // and three clusters
		"--deny":       func(c *snowsimCommand) { c.Deny = []string{"FLY ON ORDERS"} },
		"--parameter":  func(c *snowsimCommand) { c.Set = []string{"AUTOCOMMIT"} },
		"--fault":      func(c *snowsimCommand) { c.Faults = []string{"503,often"} },
	} {
		c := good()
		change(c)
		if _, err := c.options(); !engine.HasCode(err, engine.CodeInvalid) || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}
