"""Presentations, spreadsheets and Word's documents."""

from tests.unit.documents.formats.format import Format, Mixture, archived, same
from tests.unit.documents.formats.markup_readers import of_xml

A = "http://schemas.openxmlformats.org/drawingml/2006/main"
W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
OPEN_XML = "application/vnd.openxmlformats-officedocument"


def presentation(body: str, _: str = "", /, **more: str) -> bytes:
    types = {
        "/ppt/presentation.xml": f"{OPEN_XML}.presentationml.presentation.main+xml",
        "/ppt/slides/slide1.xml": f"{OPEN_XML}.presentationml.slide+xml",
        **more,
    }
    overrides = "".join(f'<Override PartName="{name}" ContentType="{kind}"/>' for name, kind in types.items())
    slide = f'<p:sld xmlns:p="p" xmlns:a="{A}"><p:txBody>{body}</p:txBody></p:sld>'
    return archived(
        {
            "[Content_Types].xml": f"<Types>{overrides}</Types>",
            "ppt/presentation.xml": "<p/>",
            **{name[1:]: slide for name in types if name != "/ppt/presentation.xml"},
            "ppt/media/image1.png": b"\x89PNG\0",
        }
    )


def word(body: str, _: str = "") -> bytes:
    kind = f"{OPEN_XML}.wordprocessingml.document.main+xml"
    main = f'<Override PartName="/word/document.xml" ContentType="{kind}"/>'
    names = f'xmlns:w="{W}" xmlns:mc="mc" xmlns:r="r" xmlns:v="v" xmlns:m="m"'
    return archived(
        {
            "[Content_Types].xml": f"<Types>{main}</Types>",
            "word/document.xml": f"<w:document {names}><w:body>{body}</w:body></w:document>",
            "word/media/image1.png": b"\x89PNG\0",
        }
    )


def run(text: str, properties: str = "") -> str:
    return f"<a:r>{properties}<a:t>{text}</a:t></a:r>"


BOLD, ENGLISH = '<a:rPr b="1"/>', '<a:rPr lang="en-US" dirty="0"/>'
LINK = '<a:rPr lang="en-US"><a:hlinkClick r:id="rId1" xmlns:r="r"/></a:rPr>'
BASELINE = '<a:rPr baseline="30000"/>'
LINK_WRITTEN = LINK.replace(' lang="en-US"', "")

PPTX = Format(
    presentation,
    same(
        f"<a:p><a:pPr/>{run('TWO WORDS')}<a:endParaRPr/></a:p>",
        f"<a:p>{run('SOME ')}{run('BOLD', BOLD)}{run(' WORD')}</a:p>",
        f"<a:p>{run('ONE')}<a:br/>{run('TWO')}</a:p>",
        f'<a:p>{run("PAGE ")}<a:fld type="slidenum"><a:t>n</a:t></a:fld></a:p>',
        f"<a:p>{run('12 %')}</a:p><a:p/>",
    )
    | {
        f"<a:p>{run('tw', ENGLISH)}{run('o &amp; é')}</a:p>": f"<a:p>{run('TWO &amp; É')}</a:p>",
        f"<a:p>{run('all', BOLD)}{run(' bold', BOLD)}</a:p>": f"<a:p>{run('ALL BOLD', BOLD)}</a:p>",
        f"<a:p>{run('see ')}{run('it', LINK)}</a:p>": f"<a:p>{run('SEE ')}{run('IT', LINK_WRITTEN)}</a:p>",
    },
    of_xml(("r", "rPr", "hlinkClick", "t"), ("t",)),
    part="ppt/slides/slide1.xml",
    separator="",
    mixture=Mixture(
        "<a:p>{}</a:p>|<a:tbl><a:tc><a:txBody><a:p>{}</a:p></a:txBody></a:tc></a:tbl>",
        f"{run('word ')}|{run('two words')}|{run('bold ', BOLD)}|{run('é', ENGLISH)}|{run('it', LINK)}|<a:br/>"
        f"|{run('2', BASELINE)}|{run('x, &amp; y. ')}|<a:fld type='slidenum'><a:t>n</a:t></a:fld>",
    ),
)


def said(text: str, properties: str = "") -> str:
    return f'<w:r>{properties}<w:t xml:space="preserve">{text}</w:t></w:r>'


def mark(kind: str) -> str:
    return f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>'


def link(inner: str) -> str:
    return f'<w:hyperlink r:id="rId1">{inner}</w:hyperlink>'


def link_field(inner: str) -> str:
    return f"{mark('begin')}<w:r><w:instrText>HYPERLINK x</w:instrText></w:r>{mark('separate')}{inner}{mark('end')}"


HEAVY, RAISED = "<w:rPr><w:b/></w:rPr>", '<w:rPr><w:vertAlign w:val="superscript"/></w:rPr>'
LOWERED, IN_ENGLISH = RAISED.replace("super", "sub"), '<w:rPr><w:lang w:val="en"/></w:rPr>'
TAB, NO_BREAK_HYPHEN = "\t", '</w:t><w:noBreakHyphen/><w:t xml:space="preserve">'
PAGE = f"{mark('begin')}<w:r><w:instrText>PAGE</w:instrText></w:r>{mark('separate')}{said('n')}{mark('end')}"
BOX = f"<w:txbxContent><w:p>{said('A BOX')}</w:p></w:txbxContent>"
RUBY = f"<w:ruby><w:rubyPr/><w:rt>{said('x')}</w:rt><w:rubyBase>{said('Y Z')}</w:rubyBase></w:ruby>"
ALTERNATIVES = (
    f"<mc:AlternateContent><mc:Choice>{BOX}</mc:Choice><mc:Fallback>{BOX}</mc:Fallback></mc:AlternateContent>"
)

DOCX = Format(
    word,
    same(
        f"<w:p><w:pPr/>{said('TWO WORDS &amp; É')}</w:p><w:p/>",
        f"<w:p>{said('FIND ')}{said('THE KEYS', HEAVY)}{said(' NOW')}</w:p>",
        f'<w:p>{said("SEE ")}<w:hyperlink r:id="rId1">{said("THIS PAGE")}</w:hyperlink>{said(" NOW")}</w:p>',
        f'<w:p>{said(" ")}<w:hyperlink r:id="rId1">{said("THIS PAGE", HEAVY)}</w:hyperlink></w:p>',
        f'<w:p>{said("A ")}<w:bookmarkStart w:id="0"/>{said("B")}<w:bookmarkEnd w:id="0"/></w:p>',
        f"<w:p>{said('A ')}{PAGE}{said(' B')}</w:p>",
        f"<w:p>{said('A ')}{link_field(said('B C'))}{said(' D')}</w:p>",
        f'<w:p><w:fldSimple w:instr="PAGE">{said("n")}</w:fldSimple>{said(" A")}</w:p>',
        f'<w:p>{said("A")}<w:r><w:footnoteReference w:id="2"/></w:r>{said(" B")}</w:p>',
        f"<w:p>{said('A ')}<w:del><w:r><w:delText>gone</w:delText></w:r></w:del>{said('B')}</w:p>",
        f"<w:p>{said('A ')}<w:ins>{said('B')}</w:ins></w:p>",
        f"<w:p>{said('A ')}<w:r>{RUBY}</w:r></w:p>",
        f"<w:p>{said('A')}<w:r><w:drawing>{BOX}</w:drawing></w:r>{said('B')}</w:p>",
        f"<w:p>{said('A')}<w:r>{ALTERNATIVES}</w:r>{said('B')}</w:p>",
        f"<w:p>{said('HOUSE')}{said('1', RAISED)}{said(' IS')}</w:p>",
        f"<w:p>{said('A')}<w:r><w:tab/></w:r>{said('B')}<w:r><w:br/></w:r>{said('C')}</w:p>",
        f"<w:sdt><w:sdtPr/><w:sdtContent><w:p>{said('A')}</w:p></w:sdtContent></w:sdt>",
        f"<w:tbl><w:tr><w:tc><w:p>{said('A')}</w:p></w:tc><w:tc><w:p>{said('12')}</w:p></w:tc></w:tr></w:tbl>",
        "<w:p><m:oMath><m:r><m:t>x</m:t></m:r></m:oMath></w:p><w:sectPr/>",
        f"<w:p>{said('BIG H')}{said('2', LOWERED)}{said('O HERE')}</w:p>",
        f"<w:p>{link(said('HOME'))}{said(' | ')}{link(said('CONTACT'))}</w:p>",
        f'<w:p><w:fldSimple w:instr=" HYPERLINK x ">{said("HOME")}</w:fldSimple>{said(" NOW")}</w:p>',
        f"<w:p>{said('A-B IS-X').replace('-', NO_BREAK_HYPHEN, 1)}</w:p>",
        # a field that goes on in the next paragraph ends texts
        f"<w:p>{mark('begin')}<w:r><w:instrText>TOC</w:instrText></w:r>{mark('separate')}{said('A')}</w:p>"
        f"<w:p>{said('B')}{mark('end')}</w:p>",
    )
    | {
        f"<w:p>{said('the 1')}{said('st', RAISED)}{said(' of may')}</w:p>": f"<w:p>{said('THE 1ST OF MAY')}</w:p>",
        f"<w:p>{said('a' + TAB + 'b')}</w:p>": f"<w:p>{said('A')}{said(TAB)}{said('B')}</w:p>",
        f"<w:p><w:r>{HEAVY}<w:t>a</w:t><w:drawing>{BOX}</w:drawing><w:pict>{BOX}</w:pict><w:t>b</w:t></w:r></w:p>": (
            f"<w:p>{said('A', HEAVY)}<w:r>{HEAVY}<w:drawing>{BOX}</w:drawing></w:r>"
            f"<w:r>{HEAVY}<w:pict>{BOX}</w:pict></w:r>{said('B', HEAVY)}</w:p>"
        ),
        f'<w:p>{said("see ")}<w:proofErr w:type="spellStart"/>{link(said("it"))}{said(", now", IN_ENGLISH)}</w:p>': (
            f"<w:p>{said('SEE ')}{link(said('IT'))}{said(', NOW')}</w:p>"
        ),
    },
    of_xml(
        ("pPr", "r", "rPr", "b", "i", "vertAlign", "lang", "t", "noBreakHyphen", "proofErr"),
        ("t", "delText", "instrText"),
    ),
    part="word/document.xml",
    separator="",
    mixture=Mixture(
        "<w:p>{}</w:p>|<w:p><w:pPr/>{}</w:p>|<w:tbl><w:tr><w:tc><w:p>{}</w:p></w:tc></w:tr></w:tbl>",
        f"{said('a b ')}|{said('word')}|{said('bold', HEAVY)}|{said('2', RAISED)}|{said('nn o, ')}|{said(' ')}|{PAGE}"
        "|<w:r><w:rPr><w:b/></w:rPr><w:t>c</w:t><w:tab/><w:t>d</w:t></w:r>"
        "|<w:r><w:rPr><w:i/></w:rPr><w:t>g</w:t><w:br w:type='page'/><w:t>h</w:t></w:r>"
        f"|<w:r><w:t>i</w:t><w:drawing>{BOX}</w:drawing><w:t>j</w:t></w:r>|{ALTERNATIVES}|<w:r>{RUBY}</w:r>"
        "|<w:bookmarkStart w:id='1'/>|<w:bookmarkEnd w:id='1'/>|<w:r><w:footnoteReference w:id='2'/></w:r>"
        "|<w:r><w:rPr><w:b/></w:rPr><w:t>u</w:t><w:noBreakHyphen/><w:t>v</w:t></w:r>"
        f"|{mark('begin')}|<w:r><w:instrText>HYPERLINK x</w:instrText></w:r>|{mark('separate')}|{mark('end')}",
        "<w:hyperlink w:anchor='x'>{}</w:hyperlink>|<w:sdt><w:sdtPr/><w:sdtContent>{}</w:sdtContent></w:sdt>"
        "|<w:fldSimple w:instr='HYPERLINK x'>{}</w:fldSimple>|<w:ins>{}</w:ins>|" + link_field("{}"),
    ),
)


def spreadsheet(strings: str, _: str = "", /, cells: str = "", **more: str) -> bytes:
    """Return one with a table of strings, and a sheet with cells, one of which compares with the text `stays`."""
    types = {
        "xl/workbook.xml": f"{OPEN_XML}.spreadsheetml.sheet.main+xml",
        "xl/worksheets/sheet1.xml": f"{OPEN_XML}.spreadsheetml.worksheet+xml",
        "xl/sharedStrings.xml": f"{OPEN_XML}.spreadsheetml.sharedStrings+xml",
        "xl/tables/table1.xml": f"{OPEN_XML}.spreadsheetml.table+xml",
    }
    overrides = "".join(f'<Override PartName="/{name}" ContentType="{kind}"/>' for name, kind in types.items())
    formula = '<c r="C1"><f>IF(A1="stays",1,0)</f><v>1</v></c>'
    return archived(
        {
            "[Content_Types].xml": f"<Types>{overrides}</Types>",
            "xl/workbook.xml": '<workbook><sheets><sheet name="A sheet"/></sheets><calcPr calcId="1"/></workbook>',
            "xl/worksheets/sheet1.xml": f"<worksheet><sheetData><row>{formula}{cells}</row></sheetData></worksheet>",
            "xl/sharedStrings.xml": f"<sst>{strings}</sst>",
            **more,
        }
    )


def in_cell(text: str, properties: str = "") -> str:
    return f'<r>{properties}<t xml:space="preserve">{text}</t></r>'


IN_RED, SUPER = '<rPr><color rgb="red"/></rPr>', '<rPr><vertAlign val="superscript"/></rPr>'
IN_COURIER = '<rPr><rFont val="Courier New"/></rPr>'

XLSX = Format(
    spreadsheet,
    same(
        "<si><t>TWO WORDS &amp; É</t></si>",
        '<si><t xml:space="preserve">  A\nB C </t></si>',
        "<si><t>A_x000D_B</t></si><si><t/></si><si/>",
        f"<si>{in_cell('FIND ')}{in_cell('THE KEYS', IN_RED)}{in_cell(' NOW')}</si>",
        f"<si>{in_cell('HOUSE')}{in_cell('1', SUPER)}{in_cell(' IS')}</si>",
        f"<si>{in_cell('A')}{in_cell(chr(10))}{in_cell('B', IN_RED)}</si>",
        f"<si>{in_cell('RUN IT: ')}{in_cell('door', IN_COURIER)}</si><si>{in_cell('door', IN_COURIER)}</si>",
    )
    | {"<si><t>stays</t></si><si><t>12 %</t></si>": "<si><t>stays</t></si><si><t>12 %</t></si>"},
    of_xml(("r", "rPr", "color", "vertAlign", "t"), ("t",)),
    part="xl/sharedStrings.xml",
    separator="",
    mixture=Mixture(
        "<si>{}</si>",
        f"{in_cell('a b ')}|{in_cell('red', IN_RED)}|{in_cell('2', SUPER)}|{in_cell(' ')}|{in_cell('x, &amp; y. ')}"
        f"|{in_cell('c' + chr(10) + 'd')}|{in_cell('door', IN_COURIER)}",
    ),
)
