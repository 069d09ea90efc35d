package snowsim

import (
	"strconv"
	"time"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// limits are those of this server's results.
func (j *job) limits() protocol.Limits {
	return protocol.Limits{Inline: j.server.opts.InlineBytes, Chunk: j.server.opts.ChunkBytes}
}

// succeed keeps the whole answer of a statement that succeeded, with the chunks that are
// fetched by themselves.
func (j *job) succeed(r *protocol.Result, kind protocol.StatementType) {
	data, chunks, size := r.Finish()
	view := j.session.view()
	for key, value := range map[string]any{
		"parameters": j.session.parameterList(), "queryId": j.queryID, "databaseProvider": nil,
		"finalDatabaseName": orNull(view.Database), "finalSchemaName": orNull(view.Schema),
		"finalWarehouseName": orNull(view.Warehouse), "finalRoleName": view.Role, "numberOfBinds": 0,
		"arrayBindSupported": false, "statementTypeId": int64(kind), "version": 1,
		"sendResultTime": time.Now().UnixMilli(),
	} {
		data[key] = value
	}
	j.kept = size
	if len(chunks) > 0 {
		list := make([]map[string]any, len(chunks))
		for i, c := range chunks {
			j.chunks = append(j.chunks, c.Data)
			list[i] = map[string]any{"url": "http://" + j.server.Addr() + "/chunks/" + j.queryID + "/" + strconv.Itoa(i) +
				"?key=" + j.chunkKey(),
				"rowCount": c.Rows, "uncompressedSize": c.Uncompressed, "compressedSize": len(c.Data)}
		}
		data["chunks"], data["chunkHeaders"] = list, map[string]string{"x-snowsim": "chunk"}
	}
	j.answer = protocol.Success(data)
}
