use super::*;
use crate::harness::testing::at;

fn view(captured: &str) -> ScreenView {
    ScreenView::parse(captured, "", false, at(0))
}

#[test]
fn styles_are_taken_away_and_faint_text_is_told_apart() {
    let screen =
        view("\x1b[38;5;246m❯\u{a0}\x1b[7m\x1b[39mP\x1b[0;2m\x1b[39mress up\x1b[0m\nplain  ");
    assert_eq!(screen.rows, ["❯\u{a0}Press up", "plain"]);
    assert_eq!(screen.solid, ["❯", "plain"]);
}

#[test]
fn a_colour_s_numbers_are_no_styles() {
    let screen =
        view("\x1b[38;5;2mgreen\x1b[48;2;2;2;2m on\x1b[38:2::2:2:2m red\x1b[2mfaint\x1b[22m.");
    assert_eq!(screen.solid, ["green on red     ."]);
}

#[test]
fn a_block_cursor_over_typed_text_hides_nothing() {
    let screen = view("❯ dra\x1b[7mf\x1b[27mt");
    assert_eq!(screen.solid, ["❯ draft"]);
}
