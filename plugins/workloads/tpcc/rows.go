package main

import (
	"errors"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/gen"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

// loadedAt stands for the time at which rows are loaded, which a plugin cannot
// know: the first instant of 2024, in µs.
const loadedAt = 1_704_067_200_000_000

// writer makes the rows of clause 4.3.3.1, each from its number alone.
type writer struct {
	params
	b    *sdk.Batch
	rand gen.Rand
	// orders maps orders onto customers, one to one.
	orders permutation
}

// Rows writes the rows that the tables begin with.
func (tpcc) Rows(doc *jsondoc.Value, b *sdk.Batch, table int, first int64, count int) error {
	p, err := readParams(doc)
	if err != nil {
		return err
	}
	if table < 0 || table >= numTables || first < 0 {
		return errors.New("there is no such table or row")
	}
	w := &writer{params: p, b: b, orders: newPermutation(p.customers)}
	end := min(first+int64(count), p.rows(table))
	for i := first; i < end; i++ {
		w.rand.Seed(int64(table), i)
		b.Row()
		switch table {
		case itemTable:
			w.item(i)
		case warehouseTable:
			w.warehouse(i)
		case districtTable:
			w.district(i)
		case customerTable:
			w.customer(i)
		case historyTable:
			w.history(i)
		case newOrderTable:
			w.newOrder(i)
		case ordersTable:
			w.order(i)
		case orderLineTable:
			w.orderLine(i)
		case stockTable:
			w.stock(i)
		}
	}
	return nil
}

// place splits the number of a row of a district: its number there from 0, and
// district and warehouse from 1.
func place(i, perDistrict int64) (n, d, w int64) {
	i, n = i/perDistrict, i%perDistrict
	return n, i%districtsPerWarehouse + 1, i/districtsPerWarehouse + 1
}

func (w *writer) address() {
	r := &w.rand
	aString(w.b, r, 10, 20)
	aString(w.b, r, 10, 20)
	aString(w.b, r, 10, 20)
	alphanumeric(w.b.TextSpace(2), r)
	zip := w.b.TextSpace(9)
	digits(zip[:4], uint64(r.Int64n(10_000)))
	copy(zip[4:], "11111")
}

// data writes the description of an item or a stock: one of ten is original.
func (w *writer) data() {
	r := &w.rand
	s := w.b.TextSpace(int(r.Between(26, 50)))
	alphanumeric(s, r)
	if r.Int64n(10) == 0 {
		const original = "ORIGINAL"
		copy(s[r.Int64n(int64(len(s)-len(original)+1)):], original)
	}
}

func (w *writer) item(i int64) {
	w.b.I64(i + 1)
	w.b.I64(1 + w.rand.Int64n(10_000))
	aString(w.b, &w.rand, 14, 24)
	fixed(w.b, w.rand.Between(100, 10_000), 2)
	w.data()
}

func (w *writer) warehouse(i int64) {
	w.b.I64(i + 1)
	aString(w.b, &w.rand, 6, 10)
	w.address()
	fixed(w.b, w.rand.Int64n(2_001), 4)
	fixed(w.b, 1_000*w.customers*districtsPerWarehouse, 2)
}

func (w *writer) district(i int64) {
	w.b.I64(i%districtsPerWarehouse + 1)
	w.b.I64(i/districtsPerWarehouse + 1)
	aString(w.b, &w.rand, 6, 10)
	w.address()
	fixed(w.b, w.rand.Int64n(2_001), 4)
	fixed(w.b, 1_000*w.customers, 2)
	w.b.I64(w.customers + 1)
}

func (w *writer) customer(i int64) {
	r := &w.rand
	n, d, home := place(i, w.customers)
	w.b.I64(n + 1)
	w.b.I64(d)
	w.b.I64(home)
	aString(w.b, r, 8, 16)
	w.b.Text("OE")
	if n < 1000 {
		lastName(w.b, n)
	} else {
		lastName(w.b, nuRand(r, 255, loadC, 0, 999))
	}
	w.address()
	digits(w.b.TextSpace(16), r.Uint64())
	w.b.Timestamp(loadedAt)
	if r.Int64n(10) == 0 {
		w.b.Text("BC")
	} else {
		w.b.Text("GC")
	}
	w.b.Text("50000.00")
	fixed(w.b, r.Int64n(5_001), 4)
	w.b.Text("-10.00")
	w.b.Text("10.00")
	w.b.I64(1)
	w.b.I64(0)
	aString(w.b, r, 300, 500)
}

func (w *writer) history(i int64) {
	n, d, home := place(i, w.customers)
	w.b.I64(n + 1)
	w.b.I64(d)
	w.b.I64(home)
	w.b.I64(d)
	w.b.I64(home)
	w.b.Timestamp(loadedAt)
	w.b.Text("10.00")
	aString(w.b, &w.rand, 12, 24)
}

func (w *writer) newOrder(i int64) {
	n, d, home := place(i, w.undelivered())
	w.b.I64(w.customers - w.undelivered() + n + 1)
	w.b.I64(d)
	w.b.I64(home)
}

// pairLines is how many lines two neighbouring orders have together.
const pairLines = 2 * linesPerOrder

// lines is how many lines an order has: 5 to 15, all alike often. Two neighbours
// have 20 together, so that the order of a line follows from the line's number.
func lines(order int64) int64 {
	var r gen.Rand
	r.Seed(numTables, order/2)
	n := r.Between(5, 15)
	if order%2 == 1 {
		return pairLines - n
	}
	return n
}

// delivered reports whether order n (from 0) of a district was delivered before the load.
func (w *writer) delivered(n int64) bool { return n < w.customers-w.undelivered() }

func (w *writer) order(i int64) {
	n, d, home := place(i, w.customers)
	w.b.I64(n + 1)
	w.b.I64(d)
	w.b.I64(home)
	w.b.I64(w.orders.at(uint64(i-n), n) + 1)
	w.b.Timestamp(loadedAt)
	if w.delivered(n) {
		w.b.I64(1 + w.rand.Int64n(10))
	} else {
		w.b.Null()
	}
	w.b.I64(lines(i))
	w.b.I64(1)
}

func (w *writer) orderLine(i int64) {
	order, line := i/pairLines*2, i%pairLines
	if first := lines(order); line >= first {
		order, line = order+1, line-first
	}
	n, d, home := place(order, w.customers)
	w.b.I64(n + 1)
	w.b.I64(d)
	w.b.I64(home)
	w.b.I64(line + 1)
	w.b.I64(1 + w.rand.Int64n(w.items))
	w.b.I64(home)
	if w.delivered(n) {
		w.b.Timestamp(loadedAt)
		w.b.I64(5)
		w.b.Text("0.00")
	} else {
		w.b.Null()
		w.b.I64(5)
		fixed(w.b, w.rand.Between(1, 999_999), 2)
	}
	alphanumeric(w.b.TextSpace(24), &w.rand)
}

func (w *writer) stock(i int64) {
	w.b.I64(i%w.items + 1)
	w.b.I64(i/w.items + 1)
	w.b.I64(w.rand.Between(10, 100))
	for range districtColumns {
		alphanumeric(w.b.TextSpace(24), &w.rand)
	}
	w.b.I64(0)
	w.b.I64(0)
	w.b.I64(0)
	w.data()
}
