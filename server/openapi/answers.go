package openapi

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadstone-db/loadstone/engine/base/jsonx"
	"github.com/loadstone-db/loadstone/engine/base/textsafe"
	"github.com/loadstone-db/loadstone/server/httpx"
)

// printable is a writer of whole documents, which say the same and can be looked at in a terminal.
type printable struct{ io.Writer }

func (p printable) Write(document []byte) (int, error) {
	if _, err := p.Writer.Write(textsafe.EscapeJSON(document)); err != nil {
		return 0, err //nolint:wrapcheck // a writer's
	}
	return len(document), nil
}

// JSON writes answers as they are, and reads bodies with errors that a user may read.
var JSON = huma.Format{
	Marshal: func(w io.Writer, v any) error {
		enc := json.NewEncoder(printable{w})
		enc.SetEscapeHTML(false)
		return enc.Encode(v)
	},
	Unmarshal: jsonx.Read,
}

// DescribeProblems describes the answers of an operation that are problems.
func DescribeProblems(doc *huma.OpenAPI, responses map[string]*huma.Response, statuses ...int) {
	schema := doc.Components.Schemas.Schema(problemType, true, "Problem")
	for _, status := range statuses {
		responses[strconv.Itoa(status)] = &huma.Response{Description: http.StatusText(status),
			Content: map[string]*huma.MediaType{httpx.ContentType: {Schema: schema}}}
	}
}
