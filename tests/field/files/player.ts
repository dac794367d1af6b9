<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" sourcelanguage="en">
<context>
    <name>Player</name>
    <message>
        <location filename="../player.cpp" line="10"/>
        <source>Open &amp;window...</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Page %1 of %L2: the door of &lt;b&gt;%3&lt;/b&gt; is &quot;closed&quot;.</source>
        <comment>a title</comment>
        <translation type="unfinished"/>
    </message>
    <message numerus="yes">
        <source>%n house(s) found</source>
        <translation type="unfinished"><numerusform></numerusform><numerusform></numerusform></translation>
    </message>
    <message>
        <source>Close the door.<byte value="x7"/></source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Good night</source>
        <translation>Schlaf gut</translation>
    </message>
    <message>
        <source>Old house</source>
        <translation type="vanished">Altes Haus</translation>
    </message>
</context>
</TS>
