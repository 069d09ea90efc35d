package wiring

import (
	"github.com/loadstone-db/loadstone/engine/base/egress"
)

// TargetFlags say what may be reached on the word of others than who runs the process.
type TargetFlags struct {
	AllowTargets []string `name:"allow-targets" placeholder:"ADDRESS" env:"LOADSTONE_ALLOW_TARGETS" help:"Where connections, sinks and webhooks may lead: ranges, addresses, names, unix sockets (10.0.0.0/8, db.example.com:5432, .example.com, unix:/var/run/postgresql). Link-local and cloud-metadata addresses are always refused (default: all other addresses, no sockets)."`
}

// Policy is what the flags say.
func (f TargetFlags) Policy() (*egress.Policy, error) { return egress.Parse(f.AllowTargets) }
