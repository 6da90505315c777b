//! XML into a tree of elements, bounded: no document type, no entities but the five, limited depth.

use iosched_types::Diagnostic;
use quick_xml::Reader;
use quick_xml::events::Event;

/// PTS files are six deep.
const MAX_DEPTH: usize = 16;

/// An element with the text directly inside it.
#[derive(Debug, Default)]
pub(super) struct Element {
    pub(super) name: String,
    pub(super) text: String,
    pub(super) children: Vec<Element>,
    /// Byte offset, for messages.
    pub(super) at: usize,
}

impl Element {
    pub(super) fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|c| c.name == name)
    }

    /// Text of a child, empty when absent.
    pub(super) fn text_of(&self, name: &str) -> String {
        self.child(name).map(|c| c.text.clone()).unwrap_or_default()
    }

    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.children.iter().filter(move |c| c.name == name)
    }
}

/// Parses a document to its root element.
pub(super) fn parse(file: &str, source: &str) -> Result<Element, Diagnostic> {
    let mut reader = Reader::from_str(source);
    let mut open: Vec<Element> = Vec::new();
    let mut root = None;
    loop {
        let at = usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX);
        let bad = |message: String| Diagnostic::at_span(file, source, at..at + 1, message);
        let event = reader.read_event().map_err(|e| bad(format!("not well-formed XML: {e}")))?;
        match event {
            Event::Start(e) => {
                if open.len() >= MAX_DEPTH {
                    return Err(bad(format!("elements are nested more than {MAX_DEPTH} deep")));
                }
                open.push(Element { name: name_of(e.name().as_ref()), at, ..Element::default() });
            }
            Event::Empty(e) => {
                let element =
                    Element { name: name_of(e.name().as_ref()), at, ..Element::default() };
                close(element, &mut open, &mut root).map_err(bad)?;
            }
            Event::End(_) => {
                let Some(element) = open.pop() else {
                    return Err(bad("an element ends that never began".into()));
                };
                close(element, &mut open, &mut root).map_err(bad)?;
            }
            Event::Text(t) => add_text(&mut open, &t.xml10_content()),
            Event::CData(t) => add_text(&mut open, &t.xml10_content()),
            Event::GeneralRef(r) => {
                let c = match r.resolve_char_ref() {
                    Ok(Some(c)) => Some(c),
                    Ok(None) => predefined(&name_of(r.as_ref())),
                    Err(_) => None,
                };
                let Some(c) = c else {
                    return Err(bad("an entity other than &lt; &gt; &amp; &quot; &apos;: entities are not expanded".into()));
                };
                add_text(&mut open, c.encode_utf8(&mut [0; 4]));
            }
            Event::DocType(_) => {
                return Err(bad("a document type declaration: refused, since entities could expand without bound".into()));
            }
            Event::Eof => break,
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
    }
    match (open.last(), root) {
        (Some(e), _) => Err(Diagnostic::at_span(
            file,
            source,
            e.at..e.at + 1,
            format!("<{}> is not closed: the file is cut off", e.name),
        )),
        (None, Some(root)) => Ok(root),
        (None, None) => Err(Diagnostic::file(file, "no XML element in the file")),
    }
}

fn name_of(bytes: impl AsRef<[u8]>) -> String {
    String::from_utf8_lossy(bytes.as_ref()).into_owned()
}

fn predefined(name: &str) -> Option<char> {
    Some(match name {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "quot" => '"',
        "apos" => '\'',
        _ => return None,
    })
}

fn add_text(open: &mut [Element], text: &str) {
    if let Some(e) = open.last_mut() {
        e.text.push_str(text);
    }
}

fn close(element: Element, open: &mut [Element], root: &mut Option<Element>) -> Result<(), String> {
    match open.last_mut() {
        Some(parent) => parent.children.push(element),
        None if root.is_none() => *root = Some(element),
        None => return Err("a second root element".into()),
    }
    Ok(())
}
