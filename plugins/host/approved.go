package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/loadstone-db/loadstone/plugins/wasm"
	"github.com/loadstone-db/loadstone/sdk/abi"
)

// approvedShape is what an approval has of a module besides its bytes. These are the metered ones,
// or, where Code says in which file their compiled code is, what Hollow leaves of them:
// then wazero does not decode and validate code that it has compiled long ago.
type approvedShape struct {
	Code      *codeFile         `json:"code,omitempty"`
	Imports   []string          `json:"imports"`
	Exports   []string          `json:"exports"`
	Functions map[string]string `json:"functions"`
	Start     bool              `json:"start"`
	Least     uint64            `json:"least"`
	Most      uint64            `json:"most"`
}

func newCompiled(s moduleShape, sha string, m *wasm.Module, e *compiler) *compiled {
	minimum, limit := m.Memory()
	return &compiled{shape: s, name: sha[:12], sha: sha, compiler: e, minPages: uint64(minimum) * abi.PageSize,
		maxPages: uint64(min(limit, abi.MaxMemoryPages)) * abi.PageSize}
}

// approved compiles what this program let through before, or returns nil where that is
// not known: then the file is judged, as if it were the first time.
func (h *Host) approved(ctx context.Context, sha string) *compiled {
	a, ok := h.approvals.Get(sha)
	if !ok {
		return nil
	}
	var k approvedShape
	if err := json.Unmarshal(a.Shape, &k); err != nil {
		return nil
	}
	c := &compiled{name: sha[:12], sha: sha, compiler: h.compiler, minPages: k.Least, maxPages: k.Most,
		shape: moduleShape{imports: k.Imports, exports: k.Exports, functions: k.Functions, start: k.Start}}
	there := func() bool { return k.Code == nil || k.Code.has(h.codeDir, a.Module) }
	if !there() {
		return nil
	}
	var err error
	if c.code, err = h.compiler.compile(ctx, a.Module); err != nil {
		h.log.Warn().Err(err).Str("sha256", sha).Msg("a plugin that was approved does not compile; it is judged again")
		return nil
	}
	if !there() {
		// The compiler looked elsewhere, found none, and compiled traps.
		if err := c.code.Close(ctx); err != nil {
			h.log.Warn().Err(err).Str("sha256", sha).Msg("closing a module without code")
		}
		return nil
	}
	return c
}

// approve keeps that a file was let through, compiled, and said what it is.
func (h *Host) approve(c *compiled, metered []byte) {
	if !h.approvals.Enabled() {
		return
	}
	k := approvedShape{Imports: c.shape.imports, Exports: c.shape.exports, Functions: c.shape.functions,
		Start: c.shape.start, Least: c.minPages, Most: c.maxPages}
	module := metered
	sum := sha256.Sum256(metered)
	hollow := wasm.StripCode(metered, hex.EncodeToString(sum[:]))
	if file, err := linkCode(h.codeDir, metered, hollow); err == nil {
		k.Code, module = &file, hollow
	} else {
		h.log.Debug().Err(err).Str("plugin", c.name).Msg("the next start validates the code of the plugin again")
	}
	text, err := json.Marshal(k)
	if err == nil {
		err = h.approvals.Put(c.sha, approval{Shape: text, Module: module})
	}
	if err != nil {
		// The next start takes a little longer.
		h.log.Debug().Err(err).Str("plugin", c.name).Msg("what the gate said of a plugin was not kept")
	}
}
