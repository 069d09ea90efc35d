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

// maxArchiveReports is how many reports one archive holds: each is made in memory, and has up to a megabyte and a half.
const maxArchiveReports = 50

// missingFileName is the file of an archive that names the runs whose report is not in it, and why.
const missingFileName = "missing.txt"

type reportArchiveInput struct {
	Runs []string `query:"runs" required:"true" minItems:"1" maxItems:"50" doc:"Run ids, comma separated."`
}

// registerArchive registers the reports of several runs as one archive.
func (h *reportHandlers) registerArchive() {
	o := NewOperation(
		http.MethodGet,
		"/api/v1/reports",
		"run-reports",
		reportTag,
		"The reports of several runs, one ZIP archive",
		http.StatusNotFound,
		http.StatusConflict,
		http.StatusTooManyRequests,
	)
	o.Description = "One HTML file for each run that has figures. The others are named in " + missingFileName +
		", with the reason; where that is all of them, the first reason is the answer."
	Attachment(&o, "The archive.", "application/zip")
	Handle(h.a, o, Throttled(h.a, func(ctx context.Context, in *reportArchiveInput) (*reportFile, error) {
		text, err := h.maker.writeArchive(ctx, in.Runs)
		if err != nil {
			return nil, err
		}
		return &reportFile{ContentType: "application/zip", CacheControl: "private, no-store", Body: text,
			Disposition: `attachment; filename="reports.zip"`}, nil
	}))
}

// writeArchive writes the reports of runs into an archive, each under a name of its own.
func (m *ReportMaker) writeArchive(ctx context.Context, ids []string) ([]byte, error) {
	if len(ids) > maxArchiveReports {
		return nil, engine.InvalidField("runs", fmt.Sprintf("names %d runs", len(ids)),
			fmt.Sprintf("name %d runs at most, and ask again for the others", maxArchiveReports))
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
			known := httpx.From(NotFoundAs(err, "run", id))
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
		if err := add(missingFileName, []byte(strings.Join(missing, "\n")+"\n")); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
