package api

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/server/httpx"
)

// mostReports is how many reports one archive holds: each is made in memory, and has up to a megabyte and a half.
const mostReports = 50

// missingName is the file of an archive that names the runs whose report is not in it, and why.
const missingName = "missing.txt"

type manyInput struct {
	Runs []string `query:"runs" required:"true" minItems:"1" maxItems:"50" doc:"Run ids, comma separated."`
}

// many registers the reports of several runs as one archive.
func (h *handlers) many() {
	o := Op(http.MethodGet, "/api/v1/reports", "run-reports", tag, "The reports of several runs, one ZIP archive",
		http.StatusNotFound, http.StatusConflict, http.StatusTooManyRequests)
	o.Description = "One HTML file for each run that has figures. The others are named in " + missingName +
		", with the reason; where that is all of them, the first reason is the answer."
	Attachment(&o, "The archive.", "application/zip")
	Handle(h.a, o, Heavily(h.a, func(ctx context.Context, in *manyInput) (*file, error) {
		text, err := h.maker.archive(ctx, in.Runs)
		if err != nil {
			return nil, err
		}
		return &file{ContentType: "application/zip", CacheControl: "private, no-store", Body: text,
			Disposition: `attachment; filename="reports.zip"`}, nil
	}))
}

// archive writes the reports of runs into an archive, each under a name of its own.
func (m *Maker) archive(ctx context.Context, ids []string) ([]byte, error) {
	if len(ids) > mostReports {
		return nil, engine.InvalidField("runs", fmt.Sprintf("names %d runs", len(ids)),
			fmt.Sprintf("name %d runs at most, and ask again for the others", mostReports))
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	add := func(name string, text []byte) error {
		f, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: time.Now().UTC()})
		if err != nil {
			return err
		}
		_, err = f.Write(text)
		return err
	}
	var missing []string
	var first error
	names := map[string]int{}
	for i, id := range ids {
		if slices.Contains(ids[:i], id) {
			continue
		}
		r, err := m.Report(ctx, id)
		if err != nil {
			known := httpx.From(Named(err, "run", id))
			if known.Code != engine.CodeNotFound && known.Code != engine.CodeConflict {
				return nil, err
			}
			if first == nil {
				first = known
			}
			missing = append(missing, fmt.Sprintf("%.200q: %s", id, known.Detail))
			continue
		}
		name := FileName(r)
		// Ids may begin alike.
		if names[name]++; names[name] > 1 {
			name = strings.TrimSuffix(name, ".html") + fmt.Sprintf("-%d.html", names[name])
		}
		if err := add(name, r.HTML); err != nil {
			return nil, err
		}
	}
	if len(names) == 0 {
		return nil, first
	}
	if len(missing) > 0 {
		if err := add(missingName, []byte(strings.Join(missing, "\n")+"\n")); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
