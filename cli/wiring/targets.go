package wiring

import (
	"github.com/loadstone-db/loadstone/engine/base/egress"
)

// TargetFlags say what may be reached on the word of others than who runs the process.
type TargetFlags struct {
	AllowTargets []string `name:"allow-targets" placeholder:"ADDRESS" env:"LOADSTONE_ALLOW_TARGETS" help:"What connections, and systems that things are sent to, may lead to: ranges, addresses and names, with a port or without (10.0.0.0/8, db.example.com:5432, .example.com), and unix sockets by their file or folder (unix:/var/run/postgresql), which leave addresses as they are. Addresses of the link and those of cloud metadata are refused always (default: all other addresses, and no unix socket)."`
}

// Policy is what the flags say.
func (f TargetFlags) Policy() (*egress.Policy, error) { return egress.Parse(f.AllowTargets) }
