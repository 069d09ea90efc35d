package prepare

import (
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/target"
)

// ServerOf is the target as the environment of a run tells of it.
func ServerOf(e engine.Environment) target.ServerInfo {
	return target.ServerInfo{Version: e.ServerVersion, Local: e.TargetIsLocal, MaxConnections: e.TargetMaxConnections,
		Simulated: e.Simulated, Emulated: e.Emulated}
}

// MaxConnections is how many connections the target allows, 0 for unknown; also of what is not prepared yet.
func (p *Prepared) MaxConnections() int {
	if p == nil {
		return 0
	}
	return p.Server.MaxConnections
}
