-- Tables of benchmarks and of data sets, from memory of their definitions: pgbench, TPC-DS, IMDB.

--= pgbench_accounts
CREATE TABLE pgbench_branches (bid int NOT NULL, bbalance int, filler char(88), PRIMARY KEY (bid)) WITH (fillfactor = 100);
CREATE TABLE pgbench_accounts (aid int NOT NULL, bid int, abalance int, filler char(84), PRIMARY KEY (aid)) WITH (fillfactor = 100);
INSERT INTO pgbench_branches SELECT g, 0 FROM generate_series(1, 10) g;
INSERT INTO pgbench_accounts SELECT g, 1 + g % 10, 0, '' FROM generate_series(1, 1000) g;

--= pgbench_history POINT_LOOKUP=key RANGE_SCAN=key UPDATE=key DELETE=key
CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22));

--= store_sales
CREATE TABLE store_sales (ss_sold_date_sk int, ss_item_sk int NOT NULL, ss_customer_sk int, ss_ticket_number bigint NOT NULL,
  ss_quantity int, ss_wholesale_cost decimal(7,2), ss_list_price decimal(7,2), ss_ext_tax decimal(7,2),
  PRIMARY KEY (ss_item_sk, ss_ticket_number));
INSERT INTO store_sales SELECT g, 1 + g % 18, g, g, 1, 99999.99, 1, 1 FROM generate_series(1, 300) g;

--= inventory_ds
CREATE TABLE inventory_ds (inv_date_sk int NOT NULL, inv_item_sk int NOT NULL, inv_warehouse_sk int NOT NULL,
  inv_quantity_on_hand int, PRIMARY KEY (inv_date_sk, inv_item_sk, inv_warehouse_sk));
INSERT INTO inventory_ds SELECT 2450815 + g, g % 9, 1, g FROM generate_series(1, 300) g;

--= customer_address
CREATE TABLE customer_address (ca_address_sk int NOT NULL PRIMARY KEY, ca_address_id char(16) NOT NULL, ca_street_number char(10),
  ca_state char(2), ca_zip char(10), ca_gmt_offset decimal(5,2));
INSERT INTO customer_address SELECT g, lpad(g::text, 16, 'A'), '1', 'CA', '9', -5.00 FROM generate_series(1, 300) g;

--= cast_info
CREATE TABLE title (id int NOT NULL PRIMARY KEY, title text NOT NULL, production_year int, md5sum varchar(32));
INSERT INTO title SELECT g, 't' || g, 1990 FROM generate_series(1, 300) g;
CREATE TABLE cast_info (id int NOT NULL PRIMARY KEY, person_id int NOT NULL, movie_id int NOT NULL REFERENCES title, note text,
  nr_order int, role_id int NOT NULL);
INSERT INTO cast_info SELECT g, g, g, NULL, 1, 1 FROM generate_series(1, 300) g;

--= title DELETE=cast_info
CREATE INDEX ON title (production_year);
