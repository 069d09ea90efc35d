package host

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/loadstone-db/loadstone/engine/plugin"
)

// adapter is a compiled adapter plugin. Every call has an instance of its own, so
// calls neither wait for nor see one another.
type adapter struct {
	host       *Host
	registered *registered
}

var _ plugin.Adapter = (*adapter)(nil)

func (a *adapter) Info() plugin.Info { return a.registered.info }

func (a *adapter) Call(ctx context.Context, request, answer any) error {
	doc, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("encoding a request to plugin %s: %w", a.registered.module.name, err)
	}
	got, err := a.host.ask(ctx, a.registered.module, doc)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(got, answer); err != nil {
		var head struct {
			Op string `json:"op"`
		}
		// The name of the operation only makes the sentence better.
		_ = json.Unmarshal(doc, &head)
		return badAnswer(a.registered.module, head.Op, err)
	}
	return nil
}
