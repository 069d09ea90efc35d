package host

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/plugins/manifest"
)

// adapter is a compiled adapter plugin. Calls do not wait for one another: each
// has an instance for itself while it lasts.
type adapter struct{ registered *registered }

var _ plugin.Adapter = (*adapter)(nil)

func (a *adapter) Info() plugin.Info { return a.registered.info }

func (a *adapter) Call(ctx context.Context, request, answer any) error {
	doc, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("encoding a request to plugin %s: %w", a.registered.module.name, err)
	}
	got, err := a.registered.ask(ctx, doc)
	if err != nil {
		return err
	}
	// An adapter that has nothing to say may say nothing.
	if got = bytes.TrimRight(got, "\x00"); len(got) == 0 {
		got = []byte("{}")
	}
	if err := manifest.Unmarshal(got, answer, manifest.MaxAnswerValues); err != nil {
		var head struct {
			Op string `json:"op"`
		}
		// The name of the operation only makes the sentence better.
		_ = json.Unmarshal(doc, &head)
		return answerError(a.registered.module, head.Op, err)
	}
	return nil
}
