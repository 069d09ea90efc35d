package host

import (
	"context"
	"encoding/json"

	"github.com/loadstone-db/loadstone/plugins/approval"
	"github.com/loadstone-db/loadstone/plugins/wasm"
	"github.com/loadstone-db/loadstone/sdk/abi"
)

// kept is what an approval has of a module besides its metered bytes.
type kept struct {
	Imports   []string          `json:"imports"`
	Exports   []string          `json:"exports"`
	Functions map[string]string `json:"functions"`
	Start     bool              `json:"start"`
	Least     uint64            `json:"least"`
	Most      uint64            `json:"most"`
}

func newCompiled(s shape, sha string, m *wasm.Module, e *compiler) *compiled {
	least, most := m.Memory()
	return &compiled{shape: s, name: sha[:12], sha: sha, compiler: e, least: uint64(least) * abi.PageSize,
		most: uint64(min(most, abi.MaxMemoryPages)) * abi.PageSize}
}

// approved compiles what this program let through before, or returns nil where that is
// not known: then the file is judged, as if it were the first time.
func (h *Host) approved(ctx context.Context, sha string) *compiled {
	a, ok := h.approvals.Get(sha)
	if !ok {
		return nil
	}
	var k kept
	if err := json.Unmarshal(a.Shape, &k); err != nil {
		return nil
	}
	c := &compiled{name: sha[:12], sha: sha, compiler: h.compiler, least: k.Least, most: k.Most,
		shape: shape{imports: k.Imports, exports: k.Exports, functions: k.Functions, start: k.Start}}
	var err error
	if c.code, err = h.compiler.compile(ctx, a.Metered); err != nil {
		h.log.Warn().Err(err).Str("sha256", sha).Msg("a plugin that was approved does not compile; it is judged again")
		return nil
	}
	return c
}

// approve keeps that a file was let through, compiled, and said what it is.
func (h *Host) approve(c *compiled, metered []byte) {
	text, err := json.Marshal(kept{Imports: c.shape.imports, Exports: c.shape.exports, Functions: c.shape.functions,
		Start: c.shape.start, Least: c.least, Most: c.most})
	if err == nil {
		err = h.approvals.Put(c.sha, approval.Approval{Shape: text, Metered: metered})
	}
	if err != nil {
		// The next start takes a little longer.
		h.log.Debug().Err(err).Str("plugin", c.name).Msg("what the gate said of a plugin was not kept")
	}
}
