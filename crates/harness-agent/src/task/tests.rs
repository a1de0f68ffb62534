//! Tests of the task workflow, through the port that engines use.

mod course;
mod driver;
mod races;
mod table;
mod turn_ends;
