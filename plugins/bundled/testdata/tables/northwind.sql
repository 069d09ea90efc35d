-- Northwind, as it is commonly ported to Postgres.

--= categories DELETE=products
CREATE TABLE categories (category_id smallint NOT NULL PRIMARY KEY, category_name varchar(15) NOT NULL, description text, picture bytea);
INSERT INTO categories SELECT g, 'c' || g, 'd', '\x00' FROM generate_series(1, 8) g;

--= customer_demographics DELETE=customer_customer_demo
CREATE TABLE customer_demographics (customer_type_id varchar(5) NOT NULL PRIMARY KEY, customer_desc text);
INSERT INTO customer_demographics SELECT 'T' || g, 'd' FROM generate_series(1, 9) g;

--= customers DELETE=orders
CREATE TABLE customers (customer_id varchar(5) NOT NULL PRIMARY KEY, company_name varchar(40) NOT NULL, contact_name varchar(30),
  contact_title varchar(30), address varchar(60), city varchar(15), region varchar(15), postal_code varchar(10), country varchar(15),
  phone varchar(24), fax varchar(24));
INSERT INTO customers (customer_id, company_name) SELECT 'C' || g, 'Company ' || g FROM generate_series(1, 91) g;

--= customer_customer_demo UPDATE=key
CREATE TABLE customer_customer_demo (customer_id varchar(5) NOT NULL REFERENCES customers,
  customer_type_id varchar(5) NOT NULL REFERENCES customer_demographics, PRIMARY KEY (customer_id, customer_type_id));
INSERT INTO customer_customer_demo SELECT 'C' || g, 'T' || 1 + g % 9 FROM generate_series(1, 50) g;

--= employees DELETE=orders
CREATE TABLE employees (employee_id smallint NOT NULL PRIMARY KEY, last_name varchar(20) NOT NULL, first_name varchar(10) NOT NULL,
  title varchar(30), birth_date date, hire_date date, photo bytea, notes text, reports_to smallint REFERENCES employees,
  photo_path varchar(255));
INSERT INTO employees (employee_id, last_name, first_name, reports_to) SELECT g, 'l', 'f', nullif(g / 3, 0) FROM generate_series(1, 9) g;

--= suppliers DELETE=products
CREATE TABLE suppliers (supplier_id smallint NOT NULL PRIMARY KEY, company_name varchar(40) NOT NULL, homepage text);
INSERT INTO suppliers SELECT g, 's' || g FROM generate_series(1, 29) g;

--= products DELETE=order_details
CREATE TABLE products (product_id smallint NOT NULL PRIMARY KEY, product_name varchar(40) NOT NULL,
  supplier_id smallint REFERENCES suppliers, category_id smallint REFERENCES categories, quantity_per_unit varchar(20), unit_price real,
  units_in_stock smallint, units_on_order smallint, reorder_level smallint, discontinued integer NOT NULL);
INSERT INTO products SELECT g, 'p' || g, 1 + g % 29, 1 + g % 8, '1 box', g, g, g, g, 0 FROM generate_series(1, 77) g;

--= region DELETE=territories
CREATE TABLE region (region_id smallint NOT NULL PRIMARY KEY, region_description varchar(60) NOT NULL);
INSERT INTO region SELECT g, 'r' FROM generate_series(1, 4) g;

--= shippers DELETE=orders
CREATE TABLE shippers (shipper_id smallint NOT NULL PRIMARY KEY, company_name varchar(40) NOT NULL, phone varchar(24));
INSERT INTO shippers SELECT g, 's' FROM generate_series(1, 6) g;

--= orders DELETE=order_details
CREATE TABLE orders (order_id smallint NOT NULL PRIMARY KEY, customer_id varchar(5) REFERENCES customers,
  employee_id smallint REFERENCES employees, order_date date, required_date date, shipped_date date, ship_via smallint REFERENCES shippers,
  freight real, ship_name varchar(40));
INSERT INTO orders SELECT 10247 + g, 'C' || 1 + g % 91, 1 + g % 9, '1996-07-04', '1996-08-01', '1996-07-16', 1 + g % 6, 32.38, 'x'
  FROM generate_series(1, 830) g;

--= territories DELETE=employee_territories
CREATE TABLE territories (territory_id varchar(20) NOT NULL PRIMARY KEY, territory_description varchar(60) NOT NULL,
  region_id smallint NOT NULL REFERENCES region);
INSERT INTO territories SELECT '0' || g, 't', 1 + g % 4 FROM generate_series(1, 53) g;

--= employee_territories UPDATE=key
CREATE TABLE employee_territories (employee_id smallint NOT NULL REFERENCES employees,
  territory_id varchar(20) NOT NULL REFERENCES territories, PRIMARY KEY (employee_id, territory_id));
INSERT INTO employee_territories SELECT 1 + g % 9, '0' || g FROM generate_series(1, 49) g;

--= order_details
CREATE TABLE order_details (order_id smallint NOT NULL REFERENCES orders, product_id smallint NOT NULL REFERENCES products,
  unit_price real NOT NULL, quantity smallint NOT NULL, discount real NOT NULL, PRIMARY KEY (order_id, product_id));
INSERT INTO order_details SELECT 10247 + g, 1 + g % 77, g, 1, 0 FROM generate_series(1, 830) g;

--= us_states
CREATE TABLE us_states (state_id smallint NOT NULL PRIMARY KEY, state_name varchar(100), state_abbr varchar(2), state_region varchar(50));
INSERT INTO us_states SELECT g, 's' || g, 'xx', 'r' FROM generate_series(1, 51) g;
