// This part is the part of memstore about sinks of continuous queries, which lie in a catalog beside it.

package fake

// SinkCatalog tells which sinks write to a connection.
type SinkCatalog interface {
	// LockSinks calls do with their names, in their order, and lets none be made or dropped until it returns. Its error
	// is that of do.
	LockSinks(connectionID string, do func(sinks []string) error) error
}

// SinkGuard is the catalog beside a store; the zero value has none.
type SinkGuard struct{ catalog SinkCatalog }

// SetSinkCatalog names the catalog. It is called before the store is used.
func (b *SinkGuard) SetSinkCatalog(c SinkCatalog) { b.catalog = c }

// LockSinks is Catalog.LockSinks; without a catalog there are no sinks.
func (b *SinkGuard) LockSinks(connectionID string, do func(sinks []string) error) error {
	if b.catalog == nil {
		return do(nil)
	}
	return b.catalog.LockSinks(connectionID, do)
}
