//! Line breaking between words.

/// Breaks `text` into lines of at most `width` characters; continuation lines are indented by two. A word that is
/// longer than a line stands alone.
pub(super) fn wrap(text: &str, width: usize) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column == 0 {
            column = length;
        } else if column + 1 + length > width {
            out.push_str("\n  ");
            column = 2 + length;
        } else {
            out.push(' ');
            column += 1 + length;
        }
        out.push_str(word);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_to_the_width() {
        assert_eq!(wrap("one two three four", 9), "one two\n  three\n  four");
        assert_eq!(wrap("incomprehensible to me", 7), "incomprehensible\n  to me");
        assert_eq!(wrap("", 10), "");
    }
}
