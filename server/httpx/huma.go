package httpx

import (
	"net/http"
	"sync"

	"github.com/danielgtaylor/huma/v2"
)

var once sync.Once

// InstallHuma makes huma word its own findings as problems. Huma keeps its error
// constructors in package variables, so this is done once for the process.
func InstallHuma() {
	once.Do(func() {
		huma.NewError = func(status int, msg string, errs ...error) huma.StatusError {
			return fromHuma(status, errs)
		}
		huma.NewErrorWithContext = func(ctx huma.Context, status int, msg string, errs ...error) huma.StatusError {
			p := fromHuma(status, errs)
			if ctx == nil {
				return p
			}
			ctx.SetHeader("Cache-Control", "no-store")
			if p.Status == http.StatusInternalServerError && p.cause == nil && len(errs) > 0 {
				p.cause = errs[0]
			}
			return p.Stamp(RequestOf(ctx.Context()))
		}
	})
}
